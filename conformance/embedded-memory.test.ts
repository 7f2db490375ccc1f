import { describeEmbedded } from './harness/describe-embedded.js'

describeEmbedded('memory')
