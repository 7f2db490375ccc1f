/**
 * Rules of an AgentTask's fields in CEL, for objects that come past the task API, which has the finer ones. Without
 * regular expressions: the API server would load an engine for them at its start. Refused as forbidden, because that
 * answer does not repeat the value.
 */
interface FieldRule {
  rule: string
  message: string
  reason: 'FieldValueForbidden' | 'FieldValueInvalid'
}

const host = "self.split('/')[2]"
const beforeAt = "self.split('@')[0].lowerAscii()"

export const repositoryUrlRules: FieldRule[] = [
  {
    rule:
      "self.startsWith('/') || !self.contains('@') || (self.contains('://')" +
      ` ? (!${host}.contains('@') || (self.startsWith('ssh://')` +
      ` && !${beforeAt}.substring(6).contains(':') && !${beforeAt}.contains('%3a')))` +
      ` : (!${beforeAt}.contains(':') && !${beforeAt}.contains('%3a')))`,
    message:
      'must not carry a user name, password or token: git on the machine of the platform finds them through its credential helpers',
    reason: 'FieldValueForbidden',
  },
  {
    rule: "self.startsWith('/') || (!self.contains('?') && !self.contains('#'))",
    message: 'must not have a query or a fragment',
    reason: 'FieldValueForbidden',
  },
]

export const branchNameRules: FieldRule[] = [
  {
    rule:
      "!['@', 'HEAD', 'FETCH_HEAD', 'ORIG_HEAD', 'MERGE_HEAD'].exists(name, self == name)" +
      " && !['-', '+', '/', '.', 'refs/'].exists(start, self.startsWith(start))" +
      " && !['/', '.', '.lock'].exists(end, self.endsWith(end))",
    message:
      'must be the short name of a branch: not HEAD, without refs/ and without - + / . before or / . .lock after it',
    reason: 'FieldValueInvalid',
  },
  {
    rule: "!['..', '@{', '//', '/.', '.lock/', ' ', '~', '^', ':', '?', '*', '[', '\\\\', '\\t', '\\n'].exists(part, self.contains(part))",
    message: 'must be a name that git takes for a branch (git check-ref-format)',
    reason: 'FieldValueInvalid',
  },
]

export const identityTextRules: FieldRule[] = [
  {
    rule: "!['<', '>', '\\n', '\\r'].exists(part, self.contains(part)) && self.trim() != ''",
    message: 'must be one line without angle brackets',
    reason: 'FieldValueInvalid',
  },
]
