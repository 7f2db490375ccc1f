export { createDaemon, type Daemon, type DaemonOptions } from './create-daemon.js'
export { type DaemonServer, type ListenTarget, serveDaemon } from './daemon-server.js'
export { runDaemon } from './run-daemon.js'
