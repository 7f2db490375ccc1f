import { readFileSync } from 'node:fs'
import { createApiServer, memoryStorage, serveHttps, sqliteStorage, writeKubeconfig } from '@corral/apiserver'
import { inProcessKubeClient } from '@corral/kube'
import { embeddedCrds } from '@corral/resources'
import { jsonLogger } from '../output/logger.js'
import { dataDirectoryOf, ensureSecret, prepareDataDirectory } from './data-directory.js'
import { kubeletStreams } from './kubelet-streams.js'
import { announce, type PartOptions } from './part.js'
import { untilStopSignal } from './until-stop-signal.js'

export interface ApiServerCommandOptions extends PartOptions {
  apiPort: number
  memory?: boolean
  kubeletCertificateAuthority?: string
}

/** `corral apiserver`. */
export async function runApiServer(options: ApiServerCommandOptions): Promise<void> {
  const stop = untilStopSignal()
  const directory = dataDirectoryOf(options)
  prepareDataDirectory(directory)
  const log = jsonLogger(options.logLevel)
  const server = await createApiServer({
    storage: options.memory ? memoryStorage() : sqliteStorage({ directory: directory.api }),
    crds: embeddedCrds(),
    log,
    tokenKey: Buffer.from(ensureSecret(directory, 'secrets/service-account-key')),
  })
  const https = await serveHttps({ server, port: options.apiPort, dataDir: directory.path, log })
  const { kubeletCertificateAuthority: authority } = options
  const client = inProcessKubeClient(server)
  const ca = authority ? readFileSync(authority, 'utf8') : undefined
  const streams = kubeletStreams({ client, ca, ...https.tls.admin })
  server.setPodStreams(streams)
  writeKubeconfig(directory.kubeconfig, https)
  announce(options, { url: https.url, kubeconfig: directory.kubeconfig, token: https.token, pid: process.pid })
  await stop
  await streams.close()
  await https.close()
  await server.close()
}
