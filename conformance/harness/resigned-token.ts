/** The times of a token; the rest is carried over as it is. */
export interface TokenClaims {
  iat: number
  nbf: number
  exp: number
}

/** The same token with other claims, under a signature that holds. */
export function resignedToken(
  token: string,
  change: (claims: TokenClaims) => TokenClaims,
  sign: (text: string) => Buffer,
): string {
  const [header = '', payload = ''] = token.split('.')
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as TokenClaims // the server's own making
  const text = `${header}.${Buffer.from(JSON.stringify(change(claims))).toString('base64url')}`
  return `${text}.${sign(text).toString('base64url')}`
}
