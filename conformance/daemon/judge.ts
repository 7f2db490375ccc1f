import { readFile } from 'node:fs/promises'
import { AgentSandboxClient, type SandboxHandle } from '@corral/agent-sandbox-sdk'

export interface Report {
  (name: string, check: () => Promise<void>): Promise<void>
  readonly failures: () => number
}

/** One line per thing that was done, `ok NAME` or `failed NAME: why`, as the other judges print them. */
export function reporter(print: (line: string) => void): Report {
  let failures = 0
  const report = async (name: string, check: () => Promise<void>): Promise<void> => {
    try {
      await check()
      print(`ok ${name}`)
    } catch (error) {
      failures += 1
      print(`failed ${name}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return Object.assign(report, { failures: () => failures })
}

const namespace = 'corral'

/** Our own SDK over upstream's protocols: spoken by our daemon, and by upstream's sandboxd where there is its program. */
export async function judgeWithSdk(
  kubeconfigPath: string,
  sandboxdProgram: string | undefined,
  report: Report,
): Promise<void> {
  const access = { kubeconfigPath, namespace }
  for (const [runtime, pool, directory] of [
    ['legacy', 'judge-legacy', '.'],
    ['sandboxd', 'judge-sandboxd', 'judge'],
  ] as const) {
    const label = `TypeScript, ${runtime}`
    await report(`${label}: opened and given up`, async () => {
      await using client = new AgentSandboxClient({ ...access, runtime })
      await using box = await client.sandboxes.create({ pool })
      equal(await box.runtime(), runtime)
      await work(label, box, directory, report)
      if (runtime === 'sandboxd') await stream(label, box, report)
    })
  }
  if (!sandboxdProgram) return
  const label = 'TypeScript, upstream’s sandboxd'
  await report(`${label}: opened and given up`, async () => {
    // Its program runs beside our daemon, which brings it in; the SDK is told to speak to it and not to ours.
    await using client = new AgentSandboxClient(access)
    await using box = await client.sandboxes.create({ pool: 'judge-legacy' })
    await box.files.write('/tmp/sandboxd', await readFile(sandboxdProgram), { mode: '0755' })
    await box.exec(['/tmp/sandboxd', '--root-dir', '/tmp/files'], { background: true }).id
    await box.ports.waitForPort(8080)
    await box.ports.waitForPort(9090)
    await using upstream = new AgentSandboxClient({ ...access, runtime: 'sandboxd' })
    const seen = await upstream.sandboxes.get(box.name)
    await work(label, seen, 'judge', report)
    await stream(label, seen, report)
    seen.detach()
  })
}

async function work(label: string, box: SandboxHandle, directory: string, report: Report): Promise<void> {
  const path = directory === '.' ? 'sdk.bin' : `${directory}/sdk.bin`
  await report(`${label}: a command, its output and exit code`, async () => {
    const { stdout, stderr, exitCode } = await box.exec(['sh', '-c', 'echo out; echo err >&2; exit 3'])
    equal([stdout, stderr, exitCode], ['out\n', 'err\n', 3])
  })
  await report(`${label}: a megabyte of output`, async () => {
    const { stdout } = await box.shell('head -c 1000000 /dev/zero | tr "\\0" x')
    equal(stdout.length, 1_000_000)
  })
  await report(`${label}: files`, async () => {
    const data = Buffer.from(Array.from({ length: 256_000 }, (_, index) => index % 256))
    await box.files.write(path, data)
    equal(Buffer.compare(Buffer.from(await box.files.read(path)), data), 0)
    equal([await box.files.exists(path), await box.files.exists('nowhere')], [true, false])
    const entries = await box.files.list(directory)
    equal(entries.find(({ name }) => name === 'sdk.bin')?.size, data.length)
  })
  await report(`${label}: twenty commands at once`, async () => {
    const numbers = Array.from({ length: 20 }, (_, number) => number)
    const results = await Promise.all(numbers.map((number) => box.exec(['echo', String(number)])))
    equal(
      results.map(({ stdout }) => stdout),
      numbers.map((number) => `${number}\n`),
    )
  })
}

/** What only sandboxd's streams can. */
async function stream(label: string, box: SandboxHandle, report: Report): Promise<void> {
  await report(`${label}: input goes in while output comes out`, async () => {
    const cat = box.exec(['cat'], { stdin: true })
    await cat.write('one\n')
    for await (const line of cat.stdout.lines()) {
      equal(line, 'one')
      break
    }
    await cat.end()
    equal(await cat.exitCode, 0)
  })
  await report(`${label}: a command is ended by a signal`, async () => {
    const sleep = box.exec(['sleep', '1000'])
    await sleep.id
    await sleep.kill('SIGTERM')
    if ((await sleep.exitCode) === 0) throw new Error('it ended with 0')
  })
  await report(`${label}: a terminal of the size that was asked for`, async () => {
    // Upstream's sets the size a moment after the command has started.
    const script = 'while [ "$(stty size)" = "0 0" ]; do sleep 0.05; done; stty size'
    const { stdout } = await box.shell(script, { pty: { columns: 91, rows: 17 } })
    equal(stdout.trim(), '17 91')
  })
  await report(`${label}: a file is deleted`, async () => {
    await box.files.remove('judge/sdk.bin')
    equal(await box.files.exists('judge/sdk.bin'), false)
  })
}

function equal(got: unknown, wanted: unknown): void {
  const [one, other] = [JSON.stringify(got), JSON.stringify(wanted)]
  if (one !== other) throw new Error(`${one} instead of ${other}`)
}
