"""Topics and keywords of your texts by BERTopic and KeyBERT, with a model that knows their words.

    pip install bertopic keybert
    python examples/topics.py texts.txt my-model

`my-model` is what `bertram adapt` wrote, or an injected or baked model that was saved. Both libraries take it as any
`SentenceTransformer`.
"""

import sys
from pathlib import Path

from bertopic import BERTopic
from keybert import KeyBERT
from sentence_transformers import SentenceTransformer
from sklearn.feature_extraction.text import CountVectorizer

NUM_WORDS = 4


def main(path: str, folder: str) -> None:
    """Prints topics, with their words and one text each with its keywords."""
    texts = [line for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
    model = SentenceTransformer(folder, trust_remote_code=True)
    embeddings = model.encode(texts, show_progress_bar=True)
    topics = BERTopic(embedding_model=model, vectorizer_model=CountVectorizer(stop_words="english"))
    topics.fit(texts, embeddings)
    keywords = KeyBERT(model)
    for topic, (text, *_) in topics.get_representative_docs().items():
        words = ", ".join(word for word, _ in topics.get_topic(topic)[:NUM_WORDS])
        found = ", ".join(word for word, _ in keywords.extract_keywords(text, top_n=NUM_WORDS))
        print(f"{topic}: {words}\n    {text[:80]}... ({found})")


if __name__ == "__main__":
    main(*sys.argv[1:])
