/** Why a task ends although nothing failed. */
export type EndReason = 'Cancelled' | 'Timeout' | 'BudgetExceeded' | 'QuestionExpired'

/** How a task ended, as its record says it. */
export interface Ending {
  /** `Succeeded`, or a cause of `protocol`. */
  code: string
  message: string
  hint?: string
}
