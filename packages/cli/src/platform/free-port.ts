/**
 * Listens on the wanted port; for 0 first on the one remembered from the last run and, when that is taken, on any.
 * A port asked for by number is never replaced by another.
 */
export async function listenRemembered<T>(
  wanted: number,
  remembered: number | undefined,
  listen: (port: number) => Promise<T>,
): Promise<T> {
  if (wanted !== 0 || !remembered) return listen(wanted)
  try {
    return await listen(remembered)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'EADDRINUSE' || code === 'EACCES') return listen(0)
    throw error
  }
}
