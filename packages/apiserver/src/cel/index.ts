export { type CelRules, compileCelRules, hasCelRules, prepareCel, withRuleErrors } from './compile-rules.js'
