export * from './generated/process_pb.js'
