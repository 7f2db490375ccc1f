/** What the end of a client ends. */
interface Closable {
  close(why: 'client'): void
}

/**
 * The lines to sandboxes of one client, which go with it. They are held weakly: a handle that its program has dropped is not
 * kept in memory until the client ends.
 */
export class ClientLinks {
  readonly #links = new Set<WeakRef<Closable>>()
  readonly #dropped = new FinalizationRegistry<WeakRef<Closable>>((link) => void this.#links.delete(link))

  add(link: Closable): void {
    const held = new WeakRef(link)
    this.#links.add(held)
    this.#dropped.register(link, held)
  }

  close(): void {
    for (const link of this.#links) link.deref()?.close('client')
    this.#links.clear()
  }
}
