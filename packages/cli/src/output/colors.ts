import picocolors from 'picocolors'

/**
 * Colours for a person at a terminal. picocolors by itself also colours where `CI` is set, so that escapes would end up in
 * files and pipes of scripts there.
 */
const { FORCE_COLOR, NO_COLOR, TERM } = process.env
export const pc: ReturnType<typeof picocolors.createColors> = picocolors.createColors(
  FORCE_COLOR ? FORCE_COLOR !== '0' : !NO_COLOR && TERM !== 'dumb' && process.stdout.isTTY === true,
)
