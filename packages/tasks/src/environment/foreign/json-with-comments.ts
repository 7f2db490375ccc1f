/** JSON with comments and commas before a closing bracket, as editors write it, as plain JSON. What is in texts stays. Pure. */
export function withoutComments(text: string): string {
  // A text, a comment of either kind, or a comma that only space and comments part from a closing bracket.
  const pattern = /"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*[\s\S]*?\*\/|,(?=(?:\s|\/\/[^\n]*\n|\/\*[\s\S]*?\*\/)*[}\]])/g
  return text.replace(pattern, (match) => (match.startsWith('"') ? match : ' '))
}
