import type { FileLinks } from './file-links.js'

/** Where an ecosystem's packages come from: what the host's own settings name. Credentials stay in the platform. */
export interface Upstream {
  /** Base addresses in the order the client would ask them; each ends with a slash. */
  readonly registries: readonly Registry[]
}

export interface Registry {
  readonly url: URL
  /** npm only: packages of this scope (`@acme`) come from here. */
  readonly scope?: string
  /** The value of the Authorization header for this registry. Sent to its origin alone, never after a redirect. */
  readonly authorization?: string
  /** Crates only: the template of the index' `config.json` for the address of a crate. */
  readonly download?: string
  /** Go only: ask the next registry after any failure, not only when the module is not found. */
  readonly fallsBackOnError?: boolean
}

/** What a request of a package client means upstream. */
export interface Resource {
  /** Addresses to ask in turn; the first that has it answers. */
  readonly sources: readonly Registry[]
  /**
   * An artifact never changes under its address and is kept as it came. An index changes when something is published:
   * it is asked for again after a while.
   */
  readonly kind: 'artifact' | 'index'
  /** Sent upstream: clients ask for one index in several formats, which are kept apart. */
  readonly accept?: string
  /** Tells answers apart that come from one address but are rewritten in different ways. */
  readonly variant?: string
  /** Turns addresses of files in an index into addresses of the mirror. `from` is where the answer came from. */
  rewrite?(body: Buffer, from: URL, contentType: string): Buffer
}

/** What a client inside the sandbox is given so that it asks the mirror. */
export interface ClientSettings {
  readonly env: Readonly<Record<string, string>>
  /** Files in the sandbox's HOME that the client cannot do without, by path below HOME. */
  readonly files: Readonly<Record<string, string>>
}

/** A request as an ecosystem sees it: its path behind the ecosystem's own prefix. */
export interface PackageRequest {
  readonly path: string
  readonly accept: string
  readonly userAgent: string
}

/** One package registry protocol. Adding one is a file and a line in `ecosystems/index.ts`. */
export interface Ecosystem {
  readonly name: string
  /** `undefined`: no client of this ecosystem asks for such a path. */
  resource(request: PackageRequest, upstream: Upstream, links: FileLinks): Resource | Fixed | undefined
  /** `baseUrl` is the mirror as the sandbox sees it, without a slash at the end. */
  clientSettings(baseUrl: string): ClientSettings
}

/** An answer the mirror gives by itself. */
export interface Fixed {
  readonly body: string
  readonly contentType: string
}
