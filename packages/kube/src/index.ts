export { type Backoff, backoffMs } from './backoff.js'
export { createKubeClient, inProcessKubeClient, type KubeClientOptions } from './client.js'
export type { ClusterAccess, Credentials } from './cluster-access.js'
export type { EventNote } from './events/event-facts.js'
export {
  type EventRecorder,
  type EventSink,
  type EventSinkOptions,
  eventSink,
  silentRecorder,
} from './events/event-sink.js'
export { handlerTransport } from './handler-transport.js'
export type { KubeFetch } from './http/fetch-call.js'
export { type HttpTransportOptions, httpTransport } from './http-transport.js'
export {
  createInformer,
  type Indexer,
  type Informer,
  type InformerHandler,
  type InformerOptions,
} from './informer.js'
export type * from './kube-client.js'
export { kubeClientFromConfig } from './kube-client-from-config.js'
export type { KubeTransport, TransportRequest, TransportResponse } from './kube-transport.js'
export { type KubeContext, listKubeContexts } from './kubeconfig/list-contexts.js'
export { type LoadKubeConfigOptions, loadKubeConfig } from './kubeconfig/load-kubeconfig.js'
export { type LeaderElectionOptions, type LeaseObject, microTime, runLeaderElection } from './leader-election.js'
export type { Exchange, RequestObserver } from './request-observer.js'
export { resourcePath } from './resource-path.js'
export { type ListenPortOptions, listenPort, type PortListener } from './stream/listen-port.js'
export { objectKey } from './watch/watch-state.js'
