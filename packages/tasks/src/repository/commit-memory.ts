/** Answers kept at most, the longest unused go first. */
const maxAnswers = 500

/**
 * Remembers answers about commits. What a commit holds never changes, and the tasks of a repository mostly start from the
 * same one: without this each asks git for the same files again. Failures are not remembered.
 */
export class CommitMemory {
  readonly #answers = new Map<string, Promise<unknown>>()

  get<T>(commit: string, question: readonly string[], ask: () => Promise<T>): Promise<T> {
    const key = JSON.stringify([commit, ...question])
    const known = this.#answers.get(key) as Promise<T> | undefined
    const answer = known ?? ask()
    this.#answers.delete(key)
    this.#answers.set(key, answer)
    if (!known) answer.catch(() => this.#answers.delete(key))
    const [oldest] = this.#answers.keys()
    if (this.#answers.size > maxAnswers && oldest !== undefined) this.#answers.delete(oldest)
    return answer
  }
}
