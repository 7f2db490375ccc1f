import type { Target } from './http-client.js'
import type { TokenClaims } from './resigned-token.js'

/** A Kubernetes API server: the embedded one or a real one. */
export interface ServerUnderTest {
  readonly kind: 'embedded' | 'real'
  /** For titles: `embedded (memory)`, `kube-apiserver v1.34.4`. */
  readonly title: string
  readonly target: Target
  /** Path of a kubeconfig for the administrator. */
  readonly kubeconfig: string
  /** Name of the node that runs pods bound to it, where there is one. */
  readonly nodeName?: string
  /** Ends the server and starts it on the same data and port. */
  restart(): Promise<void>
  /** A service account's token with other claims, signed with the key the server trusts. */
  resignToken(token: string, change: (claims: TokenClaims) => TokenClaims): string
  /** What results record about it. */
  readonly facts: Readonly<Record<string, unknown>>
  close(): Promise<void>
}
