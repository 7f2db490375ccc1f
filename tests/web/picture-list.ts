import type { Page } from 'playwright-core'

/** A page of the example platform as a picture: where it is, when it is there, and what is done to it first. */
export interface Picture {
  readonly name: string
  readonly path: string
  readonly wait: string
  prepare?(page: Page): Promise<void>
}

const comment = async (page: Page): Promise<void> => {
  await page.locator('.line.is-added .add-comment').nth(2).click()
  await page
    .getByPlaceholder('What should the agent change here?')
    .fill('Round before the clamp? −0.004 would become −0.')
  await page.getByRole('button', { name: 'Keep comment' }).click()
}

export const pictures: readonly Picture[] = [
  { name: 'list', path: '/', wait: '.row' },
  { name: 'board', path: '/?view=board', wait: '.card' },
  { name: 'new-task', path: '/', wait: '.row', prepare: (page) => page.keyboard.press('c') },
  { name: 'palette', path: '/', wait: '.row', prepare: (page) => page.keyboard.press('Control+k') },
  { name: 'plan', path: '/tasks/task-plan42', wait: '.plan-card' },
  { name: 'question', path: '/tasks/task-ask77', wait: '.question-card' },
  { name: 'activity', path: '/tasks/task-run01', wait: '.entry-output' },
  { name: 'failure', path: '/tasks/task-up001', wait: '.failure-card' },
  { name: 'changes', path: '/tasks/task-vat01/changes', wait: '.file-diff', prepare: comment },
  { name: 'details', path: '/tasks/task-vat01/details', wait: '.prompt' },
  { name: 'review', path: '/review', wait: '.file-diff' },
  { name: 'attempts', path: '/compare/group-vat', wait: '.table' },
  { name: 'projects', path: '/projects', wait: '.table' },
  { name: 'project', path: '/projects/shop', wait: '.project-form' },
  { name: 'sandboxes', path: '/sandboxes', wait: '.pool' },
  { name: 'usage', path: '/usage', wait: '.totals' },
  {
    name: 'settings',
    path: '/settings',
    wait: '.provider-card',
    async prepare(page) {
      await page.getByText('Kubernetes (Agent Sandbox)').click()
      await page.getByLabel('Context', { exact: true }).selectOption('staging')
      await page.getByLabel('Runtime class', { exact: true }).selectOption('kata')
      await page.getByRole('button', { name: 'Test connection' }).click()
      await page.locator('[data-check="sandbox"]').waitFor()
    },
  },
  { name: 'agents', path: '/settings/agents', wait: '.secret' },
  { name: 'limits', path: '/settings/limits', wait: '.field-grid' },
  { name: 'appearance', path: '/settings/appearance', wait: '.choices' },
]
