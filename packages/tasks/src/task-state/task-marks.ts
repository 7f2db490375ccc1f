/** On the claims of a task: its name. */
export const taskLabel = 'corral.dev/task'

/** On a task whose records are still kept: they go before the object does. */
export const taskFinalizer = 'corral.dev/task'
