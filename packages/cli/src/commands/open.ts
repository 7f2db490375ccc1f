import { spawn } from 'node:child_process'
import type { Command } from 'commander'
import { requirePlatform } from '../client/find-platform.js'
import { tasksClient } from '../client/tasks.js'
import { type CommonOptions, examples, print, withPlatform } from './common.js'

/** `corral open`: the web interface of the running platform. */
export function addOpenCommand(program: Command): void {
  withPlatform(program.command('open').argument('[task]', 'id of a task to open'))
    .summary('the web interface, in your browser')
    .description(
      'Opens the web interface, signed in by a link that works once within five minutes. Where no browser can be\nstarted, or with --print, the link is printed.',
    )
    .option('--print', 'only print the link')
    .addHelpText('after', examples('corral open', 'corral open --print', 'corral open ID'))
    .action(async (task: string | undefined, options: CommonOptions & { print?: boolean }) => {
      const platform = await requirePlatform(options)
      // A page that says "not found" would come too late, in a browser.
      if (task) await tasksClient(platform).get(task)
      const { loginLink } = await import('@corral/server')
      const link = `${loginLink(platform.url, platform.token)}${task ? `,/tasks/${encodeURIComponent(task)}` : ''}`
      const isOpened = !options.print && !options.json && (await startBrowser(link))
      print({ url: link }, options, () => (isOpened ? `opened ${platform.url} in your browser` : link))
    })
}

/** Whether a browser took the link. Without a display there is none to ask. */
function startBrowser(link: string): Promise<boolean> {
  const isMac = process.platform === 'darwin'
  const { DISPLAY, WAYLAND_DISPLAY } = process.env
  if (!isMac && !DISPLAY && !WAYLAND_DISPLAY) return Promise.resolve(false)
  return new Promise((resolve) => {
    const child = spawn(isMac ? 'open' : 'xdg-open', [link], { stdio: 'ignore', detached: true })
    child.once('error', () => resolve(false))
    child.once('exit', (code) => resolve(code === 0))
  })
}
