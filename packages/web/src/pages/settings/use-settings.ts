import type { SettingsView } from '@corral/protocol'
import { useEffect, useState } from 'preact/hooks'
import { draftOf, patchOf, type SettingsDraft } from '../../model/settings-draft.js'
import { api, codeOf, wordsOf } from '../../state/api.js'
import { say } from '../../state/toasts.js'

/** The saved settings, and a draft of them that this page changes. */
export function useSettings() {
  const [view, setView] = useState<SettingsView>()
  const [draft, setDraft] = useState<SettingsDraft>()
  const [failure, setFailure] = useState<unknown>()
  const [isConflict, setConflict] = useState(false)
  const load = async (): Promise<void> => {
    try {
      const found = await api.settings.get()
      setView(found)
      setDraft(draftOf(found))
      setFailure(undefined)
      setConflict(false)
    } catch (error) {
      setFailure(error)
    }
  }
  useEffect(() => void load(), [])
  const save = async (): Promise<void> => {
    if (!view || !draft) return
    const checked = patchOf(draft)
    if (!('patch' in checked)) return
    try {
      const saved = await api.settings.change({ ...checked.patch, revision: view.revision })
      setView(saved)
      setDraft(draftOf(saved))
      say('Settings are saved')
    } catch (error) {
      if (codeOf(error) === 'Conflict') setConflict(true)
      else {
        const { message, hint } = wordsOf(error)
        say(message, { isError: true, ...(hint ? { hint } : {}) })
      }
    }
  }
  const set = (change: Partial<SettingsDraft>): void => setDraft((old) => (old ? { ...old, ...change } : old))
  return { view, draft, failure, isConflict, load, save, set }
}
