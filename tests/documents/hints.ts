import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

export interface Hint {
  readonly where: string
  readonly text: string
}

/** A program that a message may tell a person to run. */
const command = /^(?:\.\/corral|corral|npm|npx|kubectl|git|chmod|sudo|apt-get) ./

/**
 * Commands in backquotes inside the strings of the packages' code: what errors, hints and help texts tell a person to
 * run. What a template fills in stands as a placeholder in capitals: `chmod o+x PATH`.
 */
export function hintsOf(root: string): Hint[] {
  return sourceFiles(root).flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8')
    if (!text.includes('`')) return []
    const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
    const found: Hint[] = []
    const visit = (node: ts.Node): void => {
      const value = textOf(node)
      if (value !== undefined)
        for (const [, inside = ''] of value.matchAll(/`([^`\n]+)`/g))
          if (command.test(inside)) {
            const { line } = source.getLineAndCharacterOfPosition(node.getStart())
            found.push({ where: `${file}:${line + 1}`, text: inside })
          }
      ts.forEachChild(node, visit)
    }
    visit(source)
    return found
  })
}

function textOf(node: ts.Node): string | undefined {
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return node.text
  if (!ts.isTemplateExpression(node)) return undefined
  return node.head.text + node.templateSpans.map((span) => placeholderOf(span.expression) + span.literal.text).join('')
}

/** `${directory.path}` reads as PATH, `${taskId}` as TASK_ID, and the words that name a data directory as such words. */
function placeholderOf(expression: ts.Expression): string {
  if (ts.isCallExpression(expression) && expression.expression.getText() === 'dataDirWords')
    return ' --data-dir DATA_DIR'
  const name = ts.isIdentifier(expression)
    ? expression.text
    : ts.isPropertyAccessExpression(expression)
      ? expression.name.text
      : 'VALUE'
  return name.replaceAll(/([a-z])([A-Z])/g, '$1_$2').toUpperCase()
}

function sourceFiles(root: string): string[] {
  return readdirSync(join(root, 'packages')).flatMap((name) => {
    const source = join('packages', name, 'src')
    return readdirSync(join(root, source), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && !file.includes('generated'))
      .map((file) => join(source, file))
      .filter(() => name !== 'testing')
  })
}
