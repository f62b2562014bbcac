import client from './index.js'

export const { EmendError, Evidence, Feedback, Node, Outputs, QueryRecorder, Review, normalize, setLogger } = client
