import { type ComponentChild, h, render } from 'preact'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { Boundary } from './boundary.js'
import { FeedEntry } from './feed-entry.js'

/** As much of a document as drawing takes. */
class FakeNode {
  childNodes: FakeNode[] = []
  attributes: { name: string }[] = []
  parentNode: FakeNode | null = null
  nodeType = 1
  data = ''
  style = {}
  ownerDocument = fakeDocument
  namespaceURI = 'http://www.w3.org/1999/xhtml'
  constructor(readonly localName: string) {}
  get firstChild(): FakeNode | null {
    return this.childNodes[0] ?? null
  }
  get nextSibling(): FakeNode | null {
    const siblings = this.parentNode?.childNodes ?? []
    return siblings[siblings.indexOf(this) + 1] ?? null
  }
  get text(): string {
    return this.data + this.childNodes.map(({ text }) => text).join(' ')
  }
  insertBefore(node: FakeNode, before: FakeNode | null): FakeNode {
    node.parentNode?.removeChild(node)
    this.childNodes.splice(before ? this.childNodes.indexOf(before) : this.childNodes.length, 0, node)
    node.parentNode = this
    return node
  }
  appendChild(node: FakeNode): FakeNode {
    return this.insertBefore(node, null)
  }
  removeChild(node: FakeNode): void {
    this.childNodes.splice(this.childNodes.indexOf(node), 1)
    node.parentNode = null
  }
  remove(): void {
    this.parentNode?.removeChild(this)
  }
  contains(node: FakeNode | null): boolean {
    return node === this || this.childNodes.some((child) => child.contains(node))
  }
  setAttribute(): void {}
  removeAttribute(): void {}
  addEventListener(): void {}
}
const fakeDocument = {
  createElement: (name: string) => new FakeNode(name),
  createElementNS: (_: string, name: string) => new FakeNode(name),
  createTextNode: (data: string) => Object.assign(new FakeNode('#text'), { data, nodeType: 3, localName: null }),
}

let body: FakeNode
beforeEach(() => {
  Object.assign(globalThis, { document: fakeDocument })
  body = new FakeNode('body')
})
afterEach(() => {
  // What is drawn later, after effects, finds that it is not on the page any more.
  render(null, body as never)
  Reflect.deleteProperty(globalThis, 'document')
})

const message = (key: number, text: unknown): ComponentChild => {
  const item = { kind: 'message', key, time: '2026-11-18T12:00:00Z', role: 'assistant', text } as never
  return h(Boundary, { key, of: item, instead: 'cannot be shown', children: h(FeedEntry, { item }) })
}

it('an entry of an agent that is no text is left out, and the others of the page stay', async () => {
  const drawn = (...entries: ComponentChild[]): void => render(h('main', null, entries), body as never)
  drawn(message(1, 'before'), message(2, { no: 'text' }), message(3, 'behind'))
  await expect.poll(() => body.text).toMatch(/before.*cannot be shown.*behind/)
  drawn(message(1, 'before'), message(2, 'text now'), message(3, 'behind'))
  await expect.poll(() => body.text).toMatch(/before.*text now.*behind/)
})
