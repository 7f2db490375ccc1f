import type { ProcessRecord, SignalName, TerminalSize } from '@corral/protocol'
import type { ChangeNotice } from './change-notice.js'
import type { OutputCursor } from './output-log.js'

/** A process of the daemon, running or ended, whatever keeps it alive. */
export interface ProcessHandle {
  /** The record as it is now. */
  record(): ProcessRecord
  /** Fires when there is more output or the process has ended. */
  readonly changed: ChangeNotice
  /** A reader of the output from `offset` on; the caller closes it. */
  cursor(offset: number): Promise<Pick<OutputCursor, 'next' | 'close'>>
  /** Writes chunks as the process takes them; `eof` closes stdin afterwards. */
  writeStdin(chunks: AsyncIterable<Uint8Array>, eof: boolean, signal: AbortSignal): Promise<void>
  kill(signal: SignalName, group: boolean): void
  resize(size: TerminalSize): void
  /** Its reader has everything before `offset`. */
  confirm?(offset: number): void
  /** Lets go of the process without ending it. */
  detach(): Promise<void>
}
