/** The marker a task leaves in its sandbox once its repository is checked out there. */
export const checkedOutMarker = (scratch: string, uid: string): string => `${scratch}/checked-out-${uid}`
