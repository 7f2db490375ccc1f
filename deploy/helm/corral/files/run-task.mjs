// A task end to end: serves a repository, has Corral change it, and looks for the branch. Ends with 1 where one is missing.
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'

const { CORRAL_URL, CORRAL_TOKEN_FILE, REPOSITORY_PORT, POD_IP } = process.env
const home = '/tmp/home'
const bare = '/tmp/served/project.git'
const branch = `helm-test-${Date.now()}`
const limitMs = 5 * 60_000

mkdirSync(home, { recursive: true })
const env = { ...process.env, HOME: home, GIT_AUTHOR_NAME: 'helm test', GIT_AUTHOR_EMAIL: 'test@corral.invalid' }
env.GIT_COMMITTER_NAME = env.GIT_AUTHOR_NAME
env.GIT_COMMITTER_EMAIL = env.GIT_AUTHOR_EMAIL
const git = (...args) => execFileSync('git', args, { env, encoding: 'utf8' })
git('init', '-q', '--bare', '-b', 'main', bare)
git('-C', bare, 'config', 'http.receivepack', 'true')
git('init', '-q', '-b', 'main', '/tmp/work')
writeFileSync('/tmp/work/README.md', 'a repository of the test\n')
git('-C', '/tmp/work', 'add', '.')
git('-C', '/tmp/work', 'commit', '-qm', 'first')
git('-C', '/tmp/work', 'push', '-q', bare, 'main')

const server = createServer(serveGit).listen(Number(REPOSITORY_PORT))
try {
  const headers = {
    authorization: `Bearer ${readFileSync(CORRAL_TOKEN_FILE, 'utf8').trim()}`,
    'content-type': 'application/json',
  }
  const ask = async (path, init) => {
    const answer = await fetch(`${CORRAL_URL}${path}`, { headers, ...init })
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    return answer.json()
  }
  const request = {
    repo: `http://${POD_IP.includes(':') ? `[${POD_IP}]` : POD_IP}:${REPOSITORY_PORT}/project.git`,
    task: 'Write a file',
    new_branch: branch,
    agent: { name: 'command', command: 'echo hello > HELLO.txt' },
  }
  const { id } = await ask('/tasks', { method: 'POST', body: JSON.stringify(request) })
  console.log(`task ${id}`)
  const deadline = Date.now() + limitMs
  let task = await ask(`/tasks/${id}`)
  while (!task.times?.finished_at) {
    if (Date.now() > deadline) throw new Error(`not ended in time: ${JSON.stringify(task.waiting ?? task.status)}`)
    await new Promise((resolve) => setTimeout(resolve, 500))
    task = await ask(`/tasks/${id}`)
  }
  if (task.status !== 'SUCCEEDED') throw new Error(`ended as ${task.status}: ${JSON.stringify(task.cause)}`)
  const text = git('-C', bare, 'show', `${branch}:HELLO.txt`)
  if (text.trim() !== 'hello') throw new Error(`the branch holds ${JSON.stringify(text)}`)
  console.log(`task ${id} pushed ${branch}`)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
} finally {
  server.closeAllConnections()
  server.close()
}

/** Git's own CGI program answers. */
function serveGit(request, response) {
  const { pathname, searchParams } = new URL(request.url, 'http://repository')
  const cgi = spawn('git', ['http-backend'], {
    env: {
      ...env,
      GIT_PROJECT_ROOT: '/tmp/served',
      GIT_HTTP_EXPORT_ALL: '1',
      REQUEST_METHOD: request.method,
      PATH_INFO: pathname,
      QUERY_STRING: searchParams.toString(),
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      GIT_PROTOCOL: request.headers['git-protocol'] ?? '',
    },
  })
  request.pipe(cgi.stdin).on('error', () => {}) // it may end before it has read everything
  const chunks = []
  cgi.stdout.on('data', (chunk) => chunks.push(chunk))
  cgi.once('close', () => {
    const all = Buffer.concat(chunks)
    const end = all.indexOf('\r\n\r\n')
    const lines = all.subarray(0, end).toString().split('\r\n')
    const headers = Object.fromEntries(lines.map((line) => line.split(/: (.*)/s).slice(0, 2)))
    response.writeHead(Number.parseInt(headers.Status ?? '200', 10), headers)
    response.end(all.subarray(end + 4))
  })
}
