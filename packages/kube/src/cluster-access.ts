/** What proves who we are: a header, a client certificate, both, or nothing. */
export interface Credentials {
  readonly authorization?: string
  /** PEM. */
  readonly cert?: string
  readonly key?: string
  /** Impersonation headers. */
  readonly impersonation?: Readonly<Record<string, string | string[]>>
}

/** Everything needed to reach one API server as one user. Made by `loadKubeConfig`, or by hand. */
export interface ClusterAccess {
  /** Origin and optional base path. */
  readonly server: URL
  /** Namespace of the context; `default` where it names none. */
  readonly namespace: string
  readonly tls: { readonly ca?: string; readonly rejectUnauthorized: boolean; readonly servername?: string }
  /** A proxy to go through: HTTP by CONNECT, or SOCKS5; only for a server with TLS. */
  readonly proxy?: URL
  /**
   * The credentials to use now: reads a token file, or asks a plugin. `refused` says that the last ones were answered
   * with 401, so a cached one is not good enough. Rejects with a `KubeError` of code `CredentialsUnavailable`.
   */
  credentials(options?: { refused?: boolean; signal?: AbortSignal | undefined }): Promise<Credentials>
  /** File and context, for messages. */
  readonly origin: string
}
