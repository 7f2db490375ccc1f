// Serves the repositories below /tmp/served with git's own CGI program, to read and to push.
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'

createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://repository')
  const cgi = spawn('git', ['http-backend'], {
    env: {
      ...process.env,
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
}).listen(9418)
