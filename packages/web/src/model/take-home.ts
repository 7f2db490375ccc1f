import type { TaskSummary } from '@corral/protocol'

/** Commands that bring a change to a work tree, for a shell. */
export function takeHomeLines(
  task: Pick<TaskSummary, 'id' | 'repo' | 'branch' | 'base_branch' | 'pushed'>,
): { title: string; text: string }[] {
  const { id, repo, branch, base_branch: base } = task
  const fetch = branch ? fetchLine(repo, branch) : undefined
  return [
    ...(fetch
      ? [
          {
            title: `Merge into ${base ?? 'the branch you are on'}`,
            text: `${base ? `git switch ${quoted(base)} && ` : ''}${fetch} && git merge FETCH_HEAD`,
          },
          { title: 'Fetch the branch', text: fetch },
        ]
      : []),
    { title: 'Into your work tree, not committed', text: `corral task apply ${id}` },
    ...(branch ? [{ title: 'Check the branch out', text: `corral task checkout ${id}` }] : []),
  ]
}

export const fetchLine = (repo: string, branch: string): string => `git fetch ${quoted(repo)} ${quoted(branch)}`

/** Whether its branch is in a repository on the platform's own machine. */
export const isOnMachine = ({ repo, branch, pushed }: Pick<TaskSummary, 'repo' | 'branch' | 'pushed'>): boolean =>
  pushed === true && branch !== undefined && /^(\/|file:\/\/)/.test(repo)

/** A word a shell takes as it is, or in quotes. */
const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)
