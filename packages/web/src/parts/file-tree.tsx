import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import type { DraftComment } from '../model/comments.js'
import { fileTree } from '../model/file-tree.js'
import { revealed } from '../model/hidden-characters.js'
import type { PatchFile } from '../model/patch.js'
import { Icon } from './icons.js'

/** The files of a change by folder. */
export function FileTree(props: {
  files: readonly PatchFile[]
  at: number
  isViewed: (path: string) => boolean
  onChoose: (index: number) => void
  comments: readonly DraftComment[]
}): JSX.Element {
  const { files } = props
  const lines = useMemo(() => fileTree(files.map(({ path }) => path)), [files])
  return (
    <ul class="file-tree">
      {lines.map((line) => {
        const indent = `depth-${Math.min(line.depth, 6)}`
        if (line.kind === 'folder')
          return (
            <li key={`${line.path}/`} class={`folder ${indent}`}>
              <Icon name="folder" size={14} />
              <span class="file-name" title={line.path}>
                <bdi>{revealed(line.name)}</bdi>
              </span>
            </li>
          )
        const file = files[line.index]
        if (!file) return null
        const remarks = props.comments.filter(({ path }) => path === file.path).length
        return (
          <li key={file.path}>
            <button
              type="button"
              aria-current={line.index === props.at}
              class={`${indent} ${props.isViewed(file.path) ? 'is-viewed' : ''}`}
              onClick={() => props.onChoose(line.index)}
            >
              <span class={`change-mark change-${file.change}`} title={file.change}>
                {file.change.charAt(0).toUpperCase()}
              </span>
              <span class="file-name" title={file.path}>
                <bdi>{revealed(line.name)}</bdi>
              </span>
              {props.isViewed(file.path) && <span class="hidden">viewed</span>}
              {remarks > 0 && (
                <span class="remark-count" title={`${remarks} comments`}>
                  {remarks}
                </span>
              )}
              <span class="diff-stat">
                <b class="added">+{file.insertions}</b> <b class="removed">−{file.deletions}</b>
              </span>
            </button>
          </li>
        )
      })}
    </ul>
  )
}
