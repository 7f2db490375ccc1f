export { ADMIN_GROUP, systemUser } from './auth/access.js'
export { ensureCertificates, ensureToken, type KeyPair, type TlsMaterial } from './http/certificates.js'
export { type KubeconfigOptions, kubeconfigFor, writeKubeconfig } from './http/kubeconfig.js'
export { type HttpsEndpoint, type ServeHttpsOptions, serveHttps } from './http/serve-https.js'
export { type ApiServer, type ApiServerOptions, createApiServer } from './server/api-server.js'
export { memoryStorage } from './storage/memory-storage.js'
export { type SqliteStorageOptions, sqliteStorage } from './storage/sqlite-storage.js'
export {
  type Storage,
  type StorageContents,
  StorageError,
  type StorageErrorCode,
  type StorageOperation,
  type StorageRow,
  type StorageWrite,
} from './storage/storage.js'
export type { StreamPlan } from './subresources/pod-streams.js'
