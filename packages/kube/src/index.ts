export type * from './kube-client.js'
