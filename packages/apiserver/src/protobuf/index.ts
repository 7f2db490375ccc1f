export { decodeProtobuf, isProtobuf } from './decode-protobuf.js'
