import type { Token, Tokens } from 'marked'
import type { ComponentChildren, JSX } from 'preact'
import { markdownTokens } from '../model/markdown-tokens.js'

/**
 * Markdown as elements of our own: HTML in it is shown as the text it is, links open elsewhere without telling where they
 * come from and only to web addresses, images are links.
 */
export function MarkdownText({ text }: { text: string }): JSX.Element {
  const tokens = markdownTokens(text)
  return tokens ? <div class="markdown">{blocks(tokens)}</div> : <p class="plain-text">{text}</p>
}

function blocks(tokens: readonly Token[]): ComponentChildren {
  return tokens.map((token, index) => block(token, index))
}

function block(token: Token, key: number): ComponentChildren {
  switch (token.type) {
    case 'heading': {
      const { depth, tokens } = token as Tokens.Heading
      // The page has headings of its own: those of a text start below them.
      const Name = `h${Math.min(6, depth + 2)}` as 'h3'
      return <Name key={key}>{inlines(tokens)}</Name>
    }
    case 'paragraph':
      return <p key={key}>{inlines((token as Tokens.Paragraph).tokens)}</p>
    case 'text': {
      const { tokens, text } = token as Tokens.Text
      return <span key={key}>{tokens ? inlines(tokens) : unescaped(text)}</span>
    }
    case 'code':
      return (
        <pre key={key}>
          <code>{(token as Tokens.Code).text}</code>
        </pre>
      )
    case 'list': {
      const { ordered, start, items } = token as Tokens.List
      const rows = items.map((item, index) => (
        <li key={index}>
          {item.task && <input type="checkbox" checked={item.checked === true} disabled aria-label="done" />}
          {blocks(item.tokens)}
        </li>
      ))
      return ordered ? (
        <ol key={key} start={start === '' ? 1 : start}>
          {rows}
        </ol>
      ) : (
        <ul key={key}>{rows}</ul>
      )
    }
    case 'blockquote':
      return <blockquote key={key}>{blocks((token as Tokens.Blockquote).tokens)}</blockquote>
    case 'table': {
      const { header, rows } = token as Tokens.Table
      return (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: wide ones scroll, and keys must reach that
        <section key={key} class="table-box" tabIndex={0} aria-label="Table">
          <table>
            <thead>
              <tr>
                {header.map((cell, index) => (
                  <th key={index}>{inlines(cell.tokens)}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row, index) => (
                <tr key={index}>
                  {row.map((cell, at) => (
                    <td key={at}>{inlines(cell.tokens)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )
    }
    case 'hr':
      return <hr key={key} />
    case 'space':
    case 'def':
      return null
    default:
      return <p key={key}>{token.raw}</p>
  }
}

function inlines(tokens: readonly Token[] = []): ComponentChildren {
  return tokens.map((token, index) => inline(token, index))
}

function inline(token: Token, key: number): ComponentChildren {
  switch (token.type) {
    case 'strong':
      return <strong key={key}>{inlines((token as Tokens.Strong).tokens)}</strong>
    case 'em':
      return <em key={key}>{inlines((token as Tokens.Em).tokens)}</em>
    case 'del':
      return <del key={key}>{inlines((token as Tokens.Del).tokens)}</del>
    case 'codespan':
      return <code key={key}>{unescaped((token as Tokens.Codespan).text)}</code>
    case 'br':
      return <br key={key} />
    case 'link':
    case 'image': {
      const { href, text, tokens } = token as Tokens.Link
      if (!/^https?:\/\//i.test(href)) return <span key={key}>{tokens ? inlines(tokens) : text}</span>
      return (
        <a key={key} href={href} target="_blank" rel="noopener noreferrer nofollow">
          {tokens ? inlines(tokens) : text || href}
        </a>
      )
    }
    case 'text': {
      const { tokens, text } = token as Tokens.Text
      return tokens ? inlines(tokens) : unescaped(text)
    }
    case 'escape':
      return (token as Tokens.Escape).text
    default:
      return token.raw
  }
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }

/** The lexer escapes for HTML, which these elements do by themselves. */
function unescaped(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (whole, name: string) => entities[name] ?? whole)
}
