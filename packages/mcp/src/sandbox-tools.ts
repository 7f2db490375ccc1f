import type { FileEntry, OwnedSandbox } from '@corral/agent-sandbox-sdk'
import { sandboxTools } from '@corral/agent-sandbox-sdk/ai'
import { CorralError } from '@corral/protocol'
import { type McpServer, ResourceTemplate } from '@modelcontextprotocol/server'
import * as z from 'zod'
import { fromBase64 } from './from-base64.js'
import { absolutePath } from './sandbox-paths.js'
import type { McpSession } from './session.js'
import { toolInput } from './tool-input.js'
import { type Cancellable, toolResult } from './tool-result.js'

const sandboxName = z.string().min(1).describe('the name that create_sandbox answered')
const timeout = z.int().min(1).max(600).default(60).describe('seconds until the call is given up')
const path = z
  .string()
  .min(1)
  .describe('absolute, or as a command would find it: relative to the working directory, or with ~/')
export const maxFileBytes: number = 8 * 1024 * 1024
/** More than a model can read; longer output loses its middle. */
const maxOutputCharacters = 1_000_000

/** The tools of upstream's MCP server, with its names and answers. */
export function addSandboxTools(server: McpServer, session: McpSession): void {
  const use = <T extends { sandbox_claim_name: string; timeout: number }>(
    input: T,
    { mcpReq }: Cancellable,
    call: (sandbox: OwnedSandbox, signal: AbortSignal) => Promise<Record<string, unknown>>,
  ) =>
    toolResult(async () => {
      const sandbox = session.find(input.sandbox_claim_name)
      return call(sandbox, AbortSignal.any([mcpReq.signal, AbortSignal.timeout(input.timeout * 1000)]))
    })

  server.registerResource(
    'sandboxes',
    new ResourceTemplate('sandboxes://{namespace}', { list: undefined }),
    { title: 'Sandboxes of this session', mimeType: 'text/plain' },
    (uri, { namespace }) => ({
      contents: session.namesIn(String(namespace)).map((text) => ({ uri: uri.href, text })),
    }),
  )

  server.registerTool(
    'create_sandbox',
    {
      title: 'Create a sandbox',
      description:
        'Claims an isolated machine to run commands in. It ends with this session, or after shutdown_after_seconds.',
      inputSchema: toolInput({
        warmpool: z.string().min(1).default('default').describe('the SandboxWarmPool to claim from'),
        namespace: z.string().min(1).optional(),
        sandbox_ready_timeout: z.int().min(1).max(3600).default(180).describe('seconds'),
        labels: z.record(z.string(), z.string()).optional(),
        pod_labels: z.record(z.string(), z.string()).optional(),
        pod_annotations: z.record(z.string(), z.string()).optional(),
        shutdown_after_seconds: z.int().min(1).nullable().default(300).describe('null: only the session ends it'),
      }),
      outputSchema: z.object({ sandbox_claim_name: z.string() }),
    },
    (input, { mcpReq }) =>
      toolResult(async () => {
        const sandbox = await session.backend.sandboxes.sandboxes.create({
          pool: input.warmpool,
          signal: mcpReq.signal,
          labels: { ...input.labels, ...session.labels },
          timeoutMs: input.sandbox_ready_timeout * 1000,
          ...(input.namespace ? { namespace: input.namespace } : {}),
          ...(input.pod_labels ? { podLabels: input.pod_labels } : {}),
          ...(input.pod_annotations ? { podAnnotations: input.pod_annotations } : {}),
          ...(input.shutdown_after_seconds === null ? {} : { ttlMs: input.shutdown_after_seconds * 1000 }),
        })
        return { sandbox_claim_name: await session.own(sandbox) }
      }),
  )

  server.registerTool(
    'delete_sandbox',
    {
      title: 'Delete a sandbox',
      description: 'Ends the sandbox and everything in it.',
      inputSchema: toolInput({ sandbox_claim_name: sandboxName }),
      annotations: { destructiveHint: true },
    },
    (input) =>
      toolResult(async () => {
        await session.remove(input.sandbox_claim_name)
        return { deleted: input.sandbox_claim_name }
      }),
  )

  server.registerTool(
    'list_sandboxes',
    {
      title: 'Sandboxes of this session',
      inputSchema: toolInput({}),
      outputSchema: z.object({ sandbox_claim_names: z.array(z.string()) }),
      annotations: { readOnlyHint: true },
    },
    () => toolResult(async () => ({ sandbox_claim_names: session.names })),
  )

  server.registerTool(
    'execute_command',
    {
      title: 'Run a command',
      description:
        'Runs a shell command in the sandbox and answers its output, without the middle where it is very long. A command that fails is an answer, not an error.',
      inputSchema: toolInput({ sandbox_claim_name: sandboxName, command: z.string().min(1), timeout }),
      outputSchema: z.object({ exit_code: z.number(), stdout: z.string(), stderr: z.string() }),
    },
    (input, { mcpReq }) =>
      toolResult(async () => {
        const sandbox = session.find(input.sandbox_claim_name)
        const limits = { timeoutMs: input.timeout * 1000, maxCharacters: maxOutputCharacters }
        const { runCommand } = sandboxTools(sandbox, limits)
        const { exitCode, stdout, stderr } = await runCommand.execute(input, { abortSignal: mcpReq.signal })
        return { exit_code: exitCode, stdout, stderr }
      }),
  )

  server.registerTool(
    'upload_file',
    {
      title: 'Write a file',
      inputSchema: toolInput({
        sandbox_claim_name: sandboxName,
        path,
        content: z.string().describe('text, or base64 with binary'),
        binary: z.boolean().default(false),
        timeout,
      }),
      outputSchema: z.object({ bytes_written: z.number() }),
    },
    (input, context) =>
      use(input, context, async (sandbox, signal) => {
        const bytes = input.binary ? fromBase64(input.content) : Buffer.from(input.content, 'utf8')
        await sandbox.files.write(await absolutePath(sandbox, input.path, signal), bytes, { signal })
        return { bytes_written: bytes.length }
      }),
  )

  server.registerTool(
    'download_file',
    {
      title: 'Read a file',
      inputSchema: toolInput({ sandbox_claim_name: sandboxName, path, binary: z.boolean().default(false), timeout }),
      outputSchema: z.object({ content: z.string(), bytes_read: z.number() }),
      annotations: { readOnlyHint: true },
    },
    (input, context) =>
      use(input, context, async (sandbox, signal) => {
        const at = await absolutePath(sandbox, input.path, signal)
        const bytes = await sandbox.files.read(at, { signal, maxBytes: maxFileBytes })
        const content = input.binary ? Buffer.from(bytes).toString('base64') : asText(bytes, input.path)
        return { content, bytes_read: bytes.length }
      }),
  )

  server.registerTool(
    'list_files',
    {
      title: 'List a directory',
      inputSchema: toolInput({
        sandbox_claim_name: sandboxName,
        path,
        max_entries: z.int().min(1).max(10_000).default(1000),
        timeout,
      }),
      annotations: { readOnlyHint: true },
    },
    (input, context) =>
      use(input, context, async (sandbox, signal) => {
        const entries = []
        let total = 0
        for await (const entry of sandbox.files.list(await absolutePath(sandbox, input.path, signal), { signal })) {
          total += 1
          if (entries.length < input.max_entries) entries.push(listed(entry))
        }
        return { entries, total_entries: total, truncated: total > entries.length }
      }),
  )

  server.registerTool(
    'file_exists',
    {
      title: 'Whether a file exists',
      inputSchema: toolInput({ sandbox_claim_name: sandboxName, path, timeout }),
      outputSchema: z.object({ exists: z.boolean() }),
      annotations: { readOnlyHint: true },
    },
    (input, context) =>
      use(input, context, async (sandbox, signal) => {
        const at = await absolutePath(sandbox, input.path, signal)
        return { exists: await sandbox.files.exists(at, { signal }) }
      }),
  )
}

/** An entry in the fields of upstream's tool. */
function listed({ name, size, type, modified_at }: FileEntry): Record<string, unknown> {
  return { name, size, type, mod_time: Date.parse(modified_at) / 1000 }
}

function asText(bytes: Uint8Array, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new CorralError('Invalid', `${name} is not UTF-8 text`, { hint: 'Read it with binary: true.' })
  }
}
