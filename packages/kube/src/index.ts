export { createKubeClient, inProcessKubeClient, type KubeClientOptions } from './client.js'
export { handlerTransport } from './handler-transport.js'
export {
  createInformer,
  type Indexer,
  type Informer,
  type InformerHandler,
  type InformerOptions,
} from './informer.js'
export type * from './kube-client.js'
export type { KubeTransport, TransportRequest, TransportResponse } from './kube-transport.js'
export { resourcePath } from './resource-path.js'
export { objectKey } from './watch/watch-state.js'
