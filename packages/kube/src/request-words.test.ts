import { expect, it } from 'vitest'
import { requestWords } from './request-words.js'
import { responseError } from './response-error.js'

it.each([
  ['GET', '/apis/agents.x-k8s.io/v1beta1/namespaces/corral/sandboxes/a', 'get sandboxes/a in namespace corral'],
  ['GET', '/apis/agents.x-k8s.io/v1beta1/sandboxes?limit=500', 'list sandboxes'],
  ['GET', '/api/v1/namespaces/x/pods?watch=true&resourceVersion=7', 'watch pods in namespace x'],
  ['POST', '/api/v1/namespaces/x/pods/p/exec?command=id', 'create pods/p/exec in namespace x'],
  ['GET', '/api/v1/namespaces/x', 'get namespaces/x'],
  ['PATCH', '/apis/corral.dev/v1alpha1/namespaces/x/agenttasks/t/status', 'patch agenttasks/t/status in namespace x'],
  ['GET', '/readyz', 'get /readyz'],
])('%s %s is told as "%s"', (method, path, words) => {
  expect(requestWords({ method, path })).toBe(words)
})

it('a refused request tells the server’s words and no path of the API', () => {
  const request = { method: 'GET', path: '/apis/corral.dev/v1alpha1/namespaces/x/agenttasks/t' }
  const body = { kind: 'Status', reason: 'NotFound', message: 'agenttasks.corral.dev "t" not found' }
  const error = responseError({ status: 404, body }, requestWords(request))
  expect(error).toMatchObject({
    code: 'NotFound',
    message: 'get agenttasks/t in namespace x: agenttasks.corral.dev "t" not found',
  })
})
