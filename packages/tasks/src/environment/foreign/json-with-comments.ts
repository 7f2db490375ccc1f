/**
 * JSON with comments and commas before a closing bracket, as editors write it, as plain JSON. What is in texts stays. Pure.
 *
 * In two passes, and with patterns that also take a text or a comment without its end: a repository brings the text, and one
 * pattern for both would try every way to part a row of comments before it gave up.
 */
export function withoutComments(text: string): string {
  // Editors on Windows put a byte order mark in front.
  const plain = text
    .replace(/^\uFEFF/, '')
    .replace(/"(?:[^"\\\n]|\\.)*"?|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/g, textOrSpace)
  return plain.replace(/"(?:[^"\\\n]|\\.)*"?|,(?=\s*[}\]])/g, textOrSpace)
}

const textOrSpace = (match: string): string => (match.startsWith('"') ? match : ' ')
