// A Stryker plugin: the words of a log line are for people, and no test should hold them.
import { declareValuePlugin, PluginKind } from '@stryker-mutator/api/plugin'

const levels = new Set(['trace', 'debug', 'info', 'warn', 'error', 'fatal'])

export const logTexts = {
  shouldIgnore(path) {
    if (!path.isCallExpression()) return undefined
    const { callee } = path.node
    if (callee.type !== 'MemberExpression' && callee.type !== 'OptionalMemberExpression') return undefined
    if (callee.property.type !== 'Identifier' || !levels.has(callee.property.name)) return undefined
    const owner = callee.object.type === 'MemberExpression' ? callee.object.property : callee.object
    const isLogger = owner.type === 'Identifier' && /^(log|logger)$/.test(owner.name)
    return isLogger ? 'a log line' : undefined
  },
}

export const strykerPlugins = [declareValuePlugin(PluginKind.Ignore, 'log-texts', logTexts)]
