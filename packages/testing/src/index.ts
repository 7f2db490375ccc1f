export { type FakeIsolation, fakeIsolation } from './fake-isolation.js'
