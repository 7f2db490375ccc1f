export { type McpHttpOptions, type McpHttpServer, serveMcpHttp } from './http.js'
export { type McpBackend, McpSession } from './session.js'
export { serveMcpStdio } from './stdio.js'
