export { type ApiServer, type ApiServerOptions, createApiServer } from './api-server.js'
export { ADMIN_GROUP, systemUser } from './auth/access.js'
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
