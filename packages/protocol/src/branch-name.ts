interface BranchRule {
  readonly refuses: (name: string) => boolean
  readonly message: string
}

const hasPart = (name: string, test: (part: string) => boolean): boolean => name.split('/').some(test)

/** Rules of `git check-ref-format --branch` first, then ours for names that git would take for something else. */
const branchRules: readonly BranchRule[] = [
  { refuses: (name) => name === '@', message: 'must not be "@", which git takes for HEAD' },
  { refuses: (name) => name.startsWith('-'), message: 'must not begin with "-", as an option does' },
  {
    refuses: (name) => name.startsWith('/') || name.endsWith('/') || name.includes('//'),
    message: 'must not begin or end with "/" or have two in a row',
  },
  { refuses: (name) => name.endsWith('.'), message: 'must not end with "."' },
  { refuses: (name) => name.includes('..'), message: 'must not contain ".."' },
  { refuses: (name) => name.includes('@{'), message: 'must not contain "@{"' },
  {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: git refuses control characters in a ref
    refuses: (name) => /[\x00-\x20\x7f~^:?*[\\]/.test(name),
    message: 'must not contain a space, a control character or any of ~ ^ : ? * [ \\',
  },
  {
    refuses: (name) => hasPart(name, (part) => part.startsWith('.')),
    message: 'must not have a part that begins with "."',
  },
  {
    refuses: (name) => hasPart(name, (part) => part.endsWith('.lock')),
    message: 'must not have a part that ends with ".lock", as the lock files of git do',
  },
  {
    refuses: (name) => /^[A-Z_]*HEAD$/.test(name),
    message: 'must not be HEAD or another name that git keeps for itself',
  },
  {
    refuses: (name) => /^refs(\/|$)/i.test(name),
    message: 'must be the short name of a branch, without "refs/heads/"',
  },
  { refuses: (name) => name.startsWith('+'), message: 'must not begin with "+", which means force in a refspec' },
  {
    refuses: (name) => /^([0-9a-f]{40}|[0-9a-f]{64})$/i.test(name),
    message: 'must not look like the id of a commit',
  },
  {
    // What has no width or is only space looks like another branch: controls, formats, separators, fillers, variants.
    refuses: (name) =>
      /[\p{Cc}\p{Cf}\p{Cs}\p{Z}\u115f\u1160\u3164\uffa0]|\u034f|\u17b4|\u17b5|\p{Variation_Selector}/u.test(name),
    message: 'must not contain characters that hide or reorder text',
  },
  {
    refuses: (name) => hasPart(name, (part) => new TextEncoder().encode(part).length > 240),
    message: 'must not have a part of more than 240 bytes, which no file can be named after',
  },
]

/** Why a text cannot name a branch of a task, as the end of a sentence; undefined for a good name. */
export function branchNameProblem(name: string): string | undefined {
  if (name === '') return 'must not be empty'
  return branchRules.find(({ refuses }) => refuses(name))?.message
}
