/**
 * Whether suites run whole (`npm run test:full`). Otherwise each shows one case of every kind, so that `npm test` stays
 * a matter of minutes.
 */
export const isFullSize: boolean = process.env.CORRAL_TEST_SIZE === 'full'
