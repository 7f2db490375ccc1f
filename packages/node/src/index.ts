export type * from './isolation/isolation.js'
