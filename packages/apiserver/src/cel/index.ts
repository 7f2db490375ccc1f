export { type CelRules, compileCelRules, hasCelRules, prepareCel } from './compile-rules.js'
