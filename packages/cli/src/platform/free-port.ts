import { explainPort } from './port-holder.js'

/**
 * Listens on the wanted port; for 0 first on the one remembered from the last run and, when that is taken, on any.
 * A port asked for by number is never replaced by another; one that is taken is told with its holder and `flag`.
 */
export async function listenRemembered<T>(
  wanted: number,
  remembered: number | undefined,
  listen: (port: number) => Promise<T>,
  flag: string = 'another port',
): Promise<T> {
  if (wanted !== 0 || !remembered)
    return listen(wanted).catch((error: unknown) => {
      throw explainPort(error, wanted, flag)
    })
  try {
    return await listen(remembered)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'EADDRINUSE' || code === 'EACCES') return listen(0)
    throw error
  }
}
