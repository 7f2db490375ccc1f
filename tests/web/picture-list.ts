import type { Page } from 'playwright-core'
import { exampleAnswers, examplePlatform } from './example-platform.js'
import type { ScriptedPlatform } from './scripted-page.js'

/** A page of the example platform as a picture: where it is, when it is there, and what is done to it first. */
export interface Picture {
  readonly name: string
  readonly path: string
  readonly wait: string
  /** Another platform than the example. */
  readonly platform?: ScriptedPlatform
  prepare?(page: Page): Promise<void>
}

const press =
  (keys: string, wait: string) =>
  async (page: Page): Promise<void> => {
    await page.keyboard.press(keys)
    await page.locator(wait).waitFor()
  }

const comment = async (page: Page): Promise<void> => {
  await page.locator('.line.is-added .add-comment').nth(2).click()
  await page
    .getByPlaceholder('What should the agent change here?')
    .fill('Round before the clamp? −0.004 would become −0.')
  await page.getByRole('button', { name: 'Keep comment' }).click()
}

const strangers: ScriptedPlatform = {
  answers: {
    '/session': (route) =>
      route.fulfill({ status: 401, json: { error: { code: 'Unauthorized', message: 'sign in first' } } }),
  },
}
const empty: ScriptedPlatform = {
  ...examplePlatform,
  answers: { ...exampleAnswers, '/projects': { projects: [] } },
  first: [{ type: 'tasks', cursor: 'example.1', reset: true, changed: [], removed: [] }],
}

export const pictures: readonly Picture[] = [
  { name: 'login', path: '/', wait: '.login', platform: strangers },
  { name: 'first-run', path: '/', wait: '.first-run', platform: empty },
  { name: 'list', path: '/', wait: '.row' },
  { name: 'board', path: '/?view=board', wait: '.card' },
  { name: 'new-task', path: '/', wait: '.row', prepare: press('c', '.new-task-dialog') },
  { name: 'palette', path: '/', wait: '.row', prepare: press('Control+k', '.palette') },
  { name: 'plan', path: '/tasks/task-plan42', wait: 'body:has(.entry-who) .plan-card li' },
  { name: 'question', path: '/tasks/task-ask77', wait: 'body:has(.entry-who) .question-card' },
  { name: 'activity', path: '/tasks/task-run01', wait: '.entry code' },
  { name: 'failure', path: '/tasks/task-up001', wait: 'body:has(.entry-who) .failure-card details' },
  { name: 'changes', path: '/tasks/task-vat01/changes', wait: '.file-diff', prepare: comment },
  {
    name: 'take-home',
    path: '/tasks/task-vat01/changes',
    wait: '.file-diff',
    async prepare(page) {
      await page.keyboard.press('m')
      await page.locator('.take-home').waitFor()
    },
  },
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
