export { type AppOptions, createApp } from './app.js'
export { type HttpServer, listen } from './listen.js'
