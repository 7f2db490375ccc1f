import { effect } from '@preact/signals'
import { noticesOf } from '../model/notices.js'
import { go } from './location.js'
import { remembered } from './preferences.js'
import { tasks } from './stream.js'

/** Whether this browser shows notifications of tasks while the page is in the background. */
export const areNoticesOn = remembered('notices', false, (value): value is boolean => typeof value === 'boolean')

/** Turns notices on when the browser lets us; false where a person has to allow it in the browser first. */
export async function setNotices(isOn: boolean): Promise<boolean> {
  const isAllowed = isOn && 'Notification' in window && (await Notification.requestPermission()) === 'granted'
  areNoticesOn.value = isAllowed
  return isAllowed === isOn
}

let known = tasks.peek()
effect(() => {
  const before = known
  known = tasks.value
  if (!areNoticesOn.peek() || document.visibilityState === 'visible' || !('Notification' in window)) return
  if (Notification.permission !== 'granted') return
  for (const { id, tag, title, text } of noticesOf(before, known)) {
    const notice = new Notification(title, { body: text, tag })
    notice.onclick = () => {
      window.focus()
      go({ page: 'task', id, tab: 'activity' })
      notice.close()
    }
  }
})
