import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TaskApi, waitUntil } from '@corral/testing'
import type { Locator, Page } from 'playwright-core'
import { smallPng } from './small-png.js'

/** One hand check of the second seed: what a person does in the browser, and what they see. */
export interface JourneyStep {
  readonly id: string
  readonly title: string
  /** Answers what was done, for the record. */
  run(page: Page): Promise<string>
}

/** A platform as the journey needs it, wherever its sandboxes run. */
export interface JourneyWorld {
  /** Changes where the platform is started again. */
  url(): string
  api(): TaskApi
  signIn: JourneyStep
  /** S2-H2 to S2-H4: looks at Settings and, where there is a choice, makes it. */
  readonly choose: readonly JourneyStep[]
  /** Makes the repository, with the agent in it, and answers its address. */
  repository(): Promise<string>
  /** `kubectl get sandboxes` where they run. */
  sandboxes(): Promise<string[]>
}

const agentCommand = 'node agent.mjs'

/** Seed 002's hand checks, in the order of a sitting: H8 before H7, because a sandbox goes when its task ends. */
export function seed002(world: JourneyWorld): JourneyStep[] {
  let task = ''
  return [
    world.signIn,
    ...world.choose,
    {
      id: 'S2-H5',
      title: 'a project is made for a repository',
      async run(page) {
        const repo = await world.repository()
        await page.getByRole('link', { name: 'Projects' }).click()
        await page.locator('.empty').waitFor()
        await page.keyboard.press('n')
        await page.getByLabel('Name', { exact: true }).fill('shop')
        await page.getByLabel('Repository').fill(repo)
        await choice(page, 'Agent').selectOption('acp')
        await page.getByLabel('Command line').fill(agentCommand)
        await page.getByRole('button', { name: 'Create project' }).click()
        await page.waitForURL(`${world.url()}/projects/shop`)
        return 'made the project shop, with its agent'
      },
    },
    {
      id: 'S2-H6',
      title: 'a task of it goes to work, because its agent starts',
      async run(page) {
        await page.goto(`${world.url()}/?view=board&project=shop`)
        await page.getByRole('heading', { name: 'Tasks' }).waitFor()
        await page.keyboard.press('c')
        const dialog = page.getByRole('dialog')
        await choice(dialog, 'Project').selectOption('shop')
        await dialog.getByLabel('What should be done').fill('the work')
        await dialog.getByLabel('Plan first', { exact: false }).check()
        await dialog.getByRole('button', { name: 'Create task' }).click()
        await page.locator('.column.group-needs-you .card', { hasText: 'the work' }).waitFor()
        task = await onlyTask(world.api())
        return 'made a task that plans first, and watched its card'
      },
    },
    {
      id: 'S2-H8',
      title: 'kubectl get sandboxes shows its sandbox, as the page does',
      async run(page) {
        const { sandbox } = await world.api().get(task)
        const name = sandbox?.name ?? ''
        const found = await world.sandboxes()
        if (!found.includes(name)) throw new Error(`the sandbox "${name}" is not among ${found.join(', ') || 'none'}`)
        await page.goto(`${world.url()}/sandboxes`)
        await page.getByText(name).first().waitFor()
        return `compared the page with the Kubernetes API: ${name}`
      },
    },
    {
      id: 'S2-H7',
      title: 'the plan is read, approved and carried out',
      async run(page) {
        await page.goto(`${world.url()}/tasks/${task}`)
        await page.locator('.plan-card').waitFor()
        await page.getByRole('button', { name: 'Approve and run' }).click()
        await page.locator('.result-card').waitFor()
        const { branch } = await world.api().until(task, 'has its branch', (view) => view.branch !== undefined)
        return `approved the plan and saw the branch ${branch}`
      },
    },
    {
      id: 'S2-H8-end',
      title: 'kubectl get sandboxes shows that it has gone',
      async run(page) {
        const { sandbox } = await world.api().get(task)
        await waitUntil('the sandbox is gone', async () => !(await world.sandboxes()).includes(sandbox?.name ?? ''))
        await page.goto(`${world.url()}/tasks/${task}/changes`)
        await page.getByText('told.txt').first().waitFor()
        return 'saw the sandbox go and the change stay'
      },
    },
  ]
}

/** A list to choose from, by the word above it: the text of its label holds all its options, too. */
function choice(scope: Page | Locator, word: string): Locator {
  const label = scope.locator('label.field').filter({ hasText: new RegExp(`^${word}`) })
  return label.locator('select')
}

async function onlyTask(api: TaskApi): Promise<string> {
  const { json } = await api.request('GET', '/tasks?project=shop')
  const [task] = (json as { tasks: { id: string }[] }).tasks
  if (!task) throw new Error('the project shop has no task')
  return task.id
}

/** Writes a line and a picture of each step to a directory. */
export function journeyRecord(directory: string): (page: Page, step: JourneyStep) => Promise<string> {
  const steps: { id: string; title: string; did: string; at: string }[] = []
  mkdirSync(directory, { recursive: true })
  return async (page, step) => {
    const did = await step.run(page)
    steps.push({ id: step.id, title: step.title, did, at: new Date().toISOString() })
    writeFileSync(join(directory, `${step.id}.png`), smallPng(await page.screenshot({ animations: 'disabled' })))
    writeFileSync(join(directory, 'journey.json'), `${JSON.stringify(steps, null, 2)}\n`)
    return did
  }
}

/** What a connection test says, by check. */
export async function testConnection(page: Page): Promise<Record<string, string>> {
  await page.getByRole('button', { name: 'Test connection' }).click()
  await page.locator('[data-check="sandbox"]').waitFor()
  await page.getByRole('button', { name: 'Test connection' }).waitFor()
  const rows = await page.locator('.check').all()
  return Object.fromEntries(
    await Promise.all(
      rows.map(async (row) => [
        await row.getAttribute('data-check'),
        /is-(\w+)/.exec((await row.getAttribute('class')) ?? '')?.[1],
      ]),
    ),
  ) as Record<string, string>
}

/** A name is chosen from what the cluster lists, or typed where it is not among them. */
export async function fillName(page: Page, label: string, value: string): Promise<void> {
  const field = page.getByLabel(label, { exact: true })
  await field.waitFor()
  const isSelect = (await field.evaluate((element) => element.tagName)) === 'SELECT'
  if (isSelect && (await field.locator(`option[value="${value}"]`).count()) > 0) {
    await field.selectOption(value)
    return
  }
  if (isSelect) await page.getByLabel(`Type another ${label.toLowerCase()}`).click()
  await page.getByLabel(label, { exact: true }).fill(value)
}
