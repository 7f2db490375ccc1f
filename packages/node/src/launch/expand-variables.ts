/**
 * Replaces `$(NAME)` by the variable's value. `$$` is a literal `$`; a reference to an undefined variable stays as it is written.
 */
export function expandVariables(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replace(/\$(\$|\(([^)]*)\))/g, (whole, marker: string, name: string | undefined) => {
    if (marker === '$') return '$'
    if (name === undefined || !Object.hasOwn(variables, name)) return whole
    return variables[name] ?? whole
  })
}
