/**
 * How a program beside the agent takes what it is told while the agent runs: every file of the inbox once, in the order of
 * the names. Files stay where they are and appear whole, so that a writer may repeat one without knowing whether it was
 * written before: the same name is the same entry. Plain JavaScript in a string, for the programs that go into sandboxes.
 */
export const inboxSource: string = `
import { mkdirSync, readdirSync, readFileSync, watch } from 'node:fs'

const taken = new Set()
function takeEntries(directory, onEntry) {
  if (!directory) return
  let names = []
  try {
    names = readdirSync(directory)
  } catch {
    return
  }
  for (const name of names.sort()) {
    if (!name.endsWith('.json') || name.startsWith('.') || taken.has(name)) continue
    taken.add(name)
    try {
      onEntry(JSON.parse(readFileSync(directory + '/' + name, 'utf8')))
    } catch {
      // Not a file of ours.
    }
  }
}
function openInbox(directory, onEntry) {
  if (!directory) return
  const look = () => takeEntries(directory, onEntry)
  mkdirSync(directory, { recursive: true })
  // Where the kernel tells of no change, a look now and then does.
  setInterval(look, 500).unref()
  try {
    watch(directory, look).on('error', () => undefined).unref()
  } catch {
    // The timer alone.
  }
  look()
}
`
